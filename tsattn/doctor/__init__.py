"""What this machine can do: looked at, and tried in processes of their own, see `trials`."""
