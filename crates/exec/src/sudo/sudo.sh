#!/bin/sh
# Hermes put this before the real sudo: where sudo would ask on a terminal, it asks the person through Hermes (-A).
# Nothing else is changed. With -S the command brings the password itself, and sudo takes -A and -S not together.
value=
for word; do
  if [ "$value" ]; then value=; continue; fi
  case $word in
  --st | --std | --stdi | --stdin) exec @SUDO@ "$@" ;;
  --chdir | --chroot | --close-from | --command-timeout | --group | --host | --other-user | --prompt | --role | --type | --user)
    value=1 ;;
  --) break ;;
  --* | [A-Za-z_]*=*) ;;
  -?*)
    letters=${word#-}
    while [ "$letters" ]; do
      case $letters in
      S*) exec @SUDO@ "$@" ;;
      [CDghpRrTtUu]) value=1 ;;
      [CDghpRrTtUu]*) break ;;
      esac
      letters=${letters#?}
    done ;;
  *) break ;;
  esac
done
exec @SUDO@ -A "$@"
