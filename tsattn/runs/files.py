"""What lies in a run folder.

config.yaml        everything resolved, enough to repeat the run
split.json         which cases of the source were trained on and which were held out
environment.json   packages, platform, device, threads
code/              where the attention is a file of the user: that file
state/             while it trains: from what it goes on when it is stopped, and the lock of who trains it
history.csv        one row an epoch
metrics.json       what the run came to; evaluation adds the test split's figures
members.json       instead of all that, in a folder of several runs: their names, whether they are one model
tracking.json      where it was reported to a tracker: what that calls the run
tensorboard/       where it was reported to TensorBoard: event files; wandb/ likewise
model.safetensors  weights; the model card stands in the file's own metadata. Written last
"""

CONFIG, WEIGHTS, HISTORY = "config.yaml", "model.safetensors", "history.csv"
METRICS, SPLIT, ENVIRONMENT = "metrics.json", "split.json", "environment.json"
CODE, STATE, MEMBERS, CARD_KEY = "code", "state", "members.json", "tsattn"
TRACKING = "tracking.json"
