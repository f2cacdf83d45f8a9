"""Named recipes, one YAML file each, and what reads those and a user's own."""
