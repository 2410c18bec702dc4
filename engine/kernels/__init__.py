"""Plain functions on arrays. They are total on what a plan describes and never validate."""
