const INPUT =
  '0123456789()[],\'/*abcdefgh@:$%{}IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~ijklmnopqrstuvwxyzABCDEFGH`#"\\ '
const CHECKSUM = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const GENERATOR = [0xf5dee51989n, 0xa9fdca3312n, 0x1bab10e32dn, 0x3706b1677an, 0x644d626ffdn]

/** Returns the eight characters after # in an output descriptor (BIP380). */
export function descriptorChecksum(text: string): string {
  let check = 1n
  const feed = (value: number): void => {
    const top = check >> 35n
    check = ((check & 0x7ffffffffn) << 5n) ^ BigInt(value)
    for (let bit = 0; bit < 5; bit += 1) if ((top >> BigInt(bit)) & 1n) check ^= GENERATOR[bit]!
  }
  let group = 0
  let count = 0
  for (const character of text) {
    const position = INPUT.indexOf(character)
    feed(position & 31)
    group = group * 3 + (position >> 5)
    count += 1
    if (count === 3) {
      feed(group)
      group = 0
      count = 0
    }
  }
  if (count > 0) feed(group)
  for (let index = 0; index < 8; index += 1) feed(0)
  check ^= 1n
  return Array.from(
    { length: 8 },
    (_, index) => CHECKSUM[Number((check >> BigInt(5 * (7 - index))) & 31n)],
  ).join('')
}
