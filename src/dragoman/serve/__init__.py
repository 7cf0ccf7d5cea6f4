"""A translator as a service: one engine under every request, several APIs over it, and a page."""
