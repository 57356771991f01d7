"""One function per endpoint: read a request, call the service, answer."""
