import sys

from .cli import main

# A character that a locale cannot show must not end the command after it was done.
sys.stdout.reconfigure(errors="backslashreplace")
sys.exit(main(sys.argv[1:]))
