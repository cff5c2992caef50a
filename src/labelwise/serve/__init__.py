"""Models over HTTP: `labelwise serve MODEL`. Needs the extra `serve`; linear models need nothing of torch."""
