#!/bin/sh
# The operator's command of this bundle, with the bundle's own Node. Works from any folder and through symbolic links.
self=$0
while [ -h "$self" ]; do
  link=$(readlink "$self") || exit 1
  case $link in
    /*) self=$link ;;
    *) self=${self%/*}/$link ;;
  esac
done
case $self in */*) ;; *) self=./$self ;; esac
root=$(CDPATH='' cd -P "${self%/*}/.." && pwd) || exit 1
exec "$root/node_modules/node/bin/node" "$root/bin/custody.mjs" "$@"
