"""From a user's own table, arrays or images to a model in a folder, without writing Python."""
