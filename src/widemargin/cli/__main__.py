"""``python -m widemargin.cli`` is ``widemargin``."""

from widemargin.cli import main

if __name__ == "__main__":
    main()
