"""Tables, plots and HTML pages made from results."""
