"""`python -m labelwise` is the command line."""

from labelwise.cli import main

if __name__ == "__main__":
    main()
