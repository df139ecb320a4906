"""``python -m wcll``."""

from wcll.cli import main

if __name__ == "__main__":
    main()
