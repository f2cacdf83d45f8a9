"""Training: data on the device, the schedule, the loop, and the workflow that makes a run folder."""
