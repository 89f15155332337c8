# shellcheck shell=bash
# Sourced by jobs/quickstart.sh: how many epochs it trains, and how long that takes.
full_epochs=39 train_images=205
most_minutes=13 # of steps alone; eight evaluations of 72 photos, a third of a step's work each, and checkpoints: 15 in all

# minutes_of RATE EPOCHS: of training at RATE images/s, in whole minutes, rounded up
minutes_of() {
  LC_ALL=C awk -v rate="$1" -v images=$(($2 * train_images)) 'BEGIN {
    minutes = images / rate / 60; whole = int(minutes)
    print (whole < minutes ? whole + 1 : whole) }'
}

# affordable_epochs RATE: as many as take most_minutes, from 1 to full_epochs
affordable_epochs() {
  LC_ALL=C awk -v rate="$1" -v images="$train_images" -v minutes="$most_minutes" -v most="$full_epochs" 'BEGIN {
    epochs = int(rate * 60 * minutes / images)
    if (epochs > most) epochs = most
    if (epochs < 1) epochs = 1
    print epochs }'
}

# count_of NUMBER NOUN: "1 minute", "2 minutes"
count_of() { if [ "$1" -eq 1 ]; then printf '1 %s' "$2"; else printf '%d %ss' "$1" "$2"; fi; }

# announcement RATE EPOCHS CHOSEN: what is said before training; CHOSEN is yes where the rate has chosen EPOCHS
announcement() {
  local less=
  if [ "$3" = yes ] && [ "$2" -lt "$full_epochs" ]; then
    less=", so that it ends soon; all $full_epochs find more and would take about $(count_of "$(minutes_of "$1" "$full_epochs")" minute): QUICKSTART_EPOCHS=$full_epochs"
  fi
  printf '%s images/s here: training %s takes about %s%s\n' \
    "$(LC_ALL=C awk -v rate="$1" 'BEGIN { printf "%.4g", rate }')" "$(count_of "$2" epoch)" \
    "$(count_of "$(minutes_of "$1" "$2")" minute)" "$less"
}
