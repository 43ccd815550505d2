"""``python -m discreet``: the command ``discreet``."""

from discreet.cli import main

if __name__ == "__main__":
    main()
