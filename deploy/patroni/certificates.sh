#!/bin/sh
# Makes a certificate authority for the database hosts, and a certificate for each of them:
#   sh certificates.sh FOLDER pg1=ADDRESS1 pg2=ADDRESS2 pg3=ADDRESS3
# Run it on a machine that is none of them. ca.key stays there, offline; NAME.key, NAME.crt and ca.crt go to the host NAME, as
# /etc/custody/tls/host.key, host.crt and ca.crt. With an existing ca.key it makes only the certificates that are missing.
# Whoever has a certificate of this authority can write to etcd: use it for nothing else.
set -eu
umask 077
folder=$1
shift
mkdir -p "$folder"
cd "$folder"
new_key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
if [ ! -e ca.key ]; then
  openssl req -x509 $new_key -days 3650 -subj '/CN=custody database hosts' -keyout ca.key -out ca.crt \
    -addext 'keyUsage=critical,keyCertSign' 2>/dev/null
fi
for host in "$@"; do
  name=${host%%=*}
  address=${host#*=}
  if [ -e "$name.crt" ]; then continue; fi
  printf '%s\n' 'basicConstraints=critical,CA:FALSE' 'keyUsage=critical,digitalSignature' 'extendedKeyUsage=serverAuth,clientAuth' \
    "subjectAltName=DNS:$name,IP:$address" > "$name.ext"
  openssl req -new $new_key -subj "/CN=$name" -keyout "$name.key" -out "$name.csr" 2>/dev/null
  openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 -extfile "$name.ext" -out "$name.crt" 2>/dev/null
  rm "$name.csr" "$name.ext"
done
