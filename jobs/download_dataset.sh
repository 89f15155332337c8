#!/usr/bin/env bash
# Fetches COCO 2017 (train, val, annotations) into a folder and unpacks it: annotations/, train2017/, val2017/.
#   jobs/download_dataset.sh [COCO_DIR]      COCO_DIR: default /coco
# A run that was broken off goes on where it stopped, what is whole already is left alone, and an archive is unpacked only
# if its size and MD5 are those below. Needs curl or wget, unzip, md5sum.
# Environment: COCO_URL (a mirror; default http://images.cocodataset.org), COCO_ARCHIVES (a file with other archives than
# those below, in the same form), FETCH_PAUSE (seconds before another attempt, default 10).
set -euo pipefail

# path below COCO_URL, bytes, MD5, the folder that it unpacks to (unpacked, each is about as large as its archive; the
# annotations are three times as large)
archives=${COCO_ARCHIVES:+$(cat "$COCO_ARCHIVES")}
archives=${archives:-'
annotations/annotations_trainval2017.zip 252907541 f4bbac642086de4f52a3fdda2de5fa2c annotations
zips/val2017.zip 815585330 442b8da7639aecaf257c1dceb8ba8c80 val2017
zips/train2017.zip 19336861798 cced6f7f71b7629ddf16f17bbcfab6b2 train2017'}
url=${COCO_URL:-http://images.cocodataset.org}
most_attempts=20
pause=${FETCH_PAUSE:-10}

say() { printf 'download_dataset: %s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }
usage() { say "error: $*; jobs/download_dataset.sh [COCO_DIR]"; exit 2; }
size_of() { stat -c %s "$1" 2>/dev/null || echo 0; }
in_gb() { awk -v bytes="$1" 'BEGIN { printf "%.1f GB", bytes / 1e9 }'; }

[ $# -le 1 ] || usage "$# arguments"
[[ ${1:-} != -* ]] || usage "'$1': no such option"
folder=${1:-/coco}
if command -v curl >/dev/null; then tool=curl; elif command -v wget >/dev/null; then tool=wget; else fail 'neither curl nor wget here; install one'; fi
for program in unzip md5sum; do command -v "$program" >/dev/null || fail "no $program here; install it"; done
mkdir -p "$folder" 2>/dev/null || fail "cannot make the folder '$folder'; name one of your own"
[ -w "$folder" ] || fail "cannot write into '$folder'; name a folder of your own"
exec 9>"$folder/.download.lock"
flock -n 9 || fail "another download into '$folder' is running"

# --- space: the archives that are missing, and what they unpack to -----------------------------------------------------
needed=0
while read -r path bytes _ name; do
  if [ -z "$path" ] || [ -d "$folder/$name" ]; then continue; fi
  times=1
  [ "$name" != annotations ] || times=3
  needed=$((needed + bytes - $(size_of "$folder/${path##*/}.part") - $(size_of "$folder/${path##*/}") + times * bytes))
done <<<"$archives"
free=$(($(df -Pk "$folder" | awk 'NR == 2 { print $4 }') * 1024))
if [ "$needed" -gt 0 ]; then
  say "'$folder' needs $(in_gb "$needed") more: archives and what they unpack to; $(in_gb "$free") are free, by $tool from $url"
  [ "$free" -ge "$needed" ] || fail "'$folder': not enough space; $(in_gb $((needed - free))) are missing"
fi

# --- one archive -------------------------------------------------------------------------------------------------------
# Fetches what is missing of the file. Returns the tool's exit code; prints the server's answer where it is an error.
fetch_rest() {
  if [ "$tool" = curl ]; then
    curl --silent --show-error --fail --location --continue-at - --connect-timeout 30 --speed-limit 1000 --speed-time 60 --output "$2" "$1" 2>"$folder/.download.log"
  else
    wget --no-verbose --continue --tries=1 --timeout=60 --output-document="$2" "$1" 2>"$folder/.download.log"
  fi
}

# An answer that another attempt will not change: 4xx but 408, 416 and 429.
is_final() { grep -Eq '(error: |ERROR )4(0[0-79]|1[0-57-9]|2[0-8]|[3-9])' "$folder/.download.log"; }

fetch() {
  local path=$1 bytes=$2 md5=$3 file=$folder/${1##*/} attempt before found damaged=no
  [ ! -e "$file" ] || return 0
  for ((attempt = 1; attempt <= most_attempts; ++attempt)); do
    [ "$(size_of "$file.part")" -le "$bytes" ] || rm -f "$file.part"
    before=$(size_of "$file.part")
    if [ "$before" -lt "$bytes" ]; then
      say "${path##*/}: $(in_gb "$before") of $(in_gb "$bytes") here, fetching the rest"
      fetch_rest "$url/$path" "$file.part" || {
        ! is_final || fail "$url/$path: $(tail -n 1 "$folder/.download.log"); is COCO_URL right?"
        # curl 33: the server cannot go on in the middle of a file.
        ! grep -q 'byte ranges' "$folder/.download.log" || rm -f "$file.part"
        say "${path##*/}: broken off ($(tail -n 1 "$folder/.download.log" | cut -c 1-100)), attempt $attempt of $most_attempts"
        [ "$(size_of "$file.part")" -gt "$before" ] || sleep "$pause"
        continue
      }
    fi
    found=$(size_of "$file.part")
    [ "$found" -ge "$bytes" ] || { say "${path##*/}: broken off at $(in_gb "$found"), attempt $attempt of $most_attempts"; continue; }
    say "${path##*/}: comparing its MD5"
    if [ "$found" = "$bytes" ] && [ "$(md5sum <"$file.part" | cut -d ' ' -f 1)" = "$md5" ]; then
      mv "$file.part" "$file"
      return 0
    fi
    rm -f "$file.part"
    [ "$damaged" = no ] || fail "$url/$path: twice not the file that is expected (MD5 $md5, $bytes bytes); try another COCO_URL"
    damaged=yes
    say "${path##*/}: damaged on the way, fetching it anew"
  done
  fail "$url/$path: given up after $most_attempts attempts; run this again to go on"
}

unpack() {
  local file=$folder/${1##*/} name=$2 work=$folder/.unpack
  say "${1##*/}: unpacking"
  rm -rf "$work"
  unzip -q "$file" -d "$work" || fail "$file: cannot be unpacked (space? see above); run this again"
  [ -d "$work/$name" ] || fail "$file: holds no $name/"
  mv "$work/$name" "$folder/$name"
  rm -rf "$work" "$file"
}

while read -r path bytes md5 name; do
  [ -n "$path" ] || continue
  if [ -d "$folder/$name" ]; then say "$name/ is there"; continue; fi
  fetch "$path" "$bytes" "$md5"
  unpack "$path" "$name"
done <<<"$archives"
rm -f "$folder/.download.log"
say "done: COCO 2017 lies in '$folder'; pack it: build/default/bin/ssd_preprocess $folder /scratch/shards"
