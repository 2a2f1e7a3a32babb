import {
  checkPrimeSync,
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
} from 'node:crypto'

const EXPONENT = 65_537n
const PRIMES = 4
const PRIME_BYTES = 128

/**
 * The first prime from where a name's digests lead, with its two highest bits set, so that the
 * modulus has all its bits.
 */
function primeOf(name: string): bigint {
  const parts = Array.from({ length: PRIME_BYTES / 64 }, (_, at) =>
    createHash('sha512').update(`${name}/${at}`).digest(),
  )
  let candidate =
    BigInt(`0x${Buffer.concat(parts).toString('hex')}`) | (15n << BigInt(PRIME_BYTES * 8 - 4)) | 1n
  while (candidate % EXPONENT === 1n || !checkPrimeSync(candidate)) candidate += 2n
  return candidate
}

/** `value` to the power of −1, by Euclid. */
function inverse(value: bigint, modulus: bigint): bigint {
  let [a, b, x, y] = [value % modulus, modulus, 1n, 0n]
  while (a > 1n) [a, b, x, y] = [b % a, a, y - (b / a) * x, x]
  return ((x % modulus) + modulus) % modulus
}

const der = (tag: number, content: Buffer): Buffer => {
  const size = content.length
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}
const sequence = (...parts: Buffer[]): Buffer => der(0x30, Buffer.concat(parts))
function whole(value: bigint): Buffer {
  const hex = value.toString(16)
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  return der(0x02, (bytes[0] as number) > 127 ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes)
}

/**
 * The key of all callers of a simulation: RSA of 4096 bits in four primes (RFC 8017, 3.2), which
 * signs in a third of the time that two take, and is to be verified as any other. It is the same on
 * every machine, as what is signed is part of a seed's story.
 */
function callerKey(): { privateKey: KeyObject; publicKey: string } {
  const primes = Array.from({ length: PRIMES }, (_, at) => primeOf(`caller of a simulation/${at}`))
  const [p, q, ...others] = primes as [bigint, bigint, ...bigint[]]
  const product = (values: readonly bigint[]) => values.reduce((all, value) => all * value, 1n)
  const exponent = inverse(EXPONENT, product(primes.map((prime) => prime - 1n)))
  const further = others.map((prime, at) =>
    sequence(
      whole(prime),
      whole(exponent % (prime - 1n)),
      whole(inverse(product(primes.slice(0, at + 2)), prime)),
    ),
  )
  const key = createPrivateKey({
    format: 'der',
    type: 'pkcs1',
    key: sequence(
      whole(1n),
      whole(product(primes)),
      whole(EXPONENT),
      whole(exponent),
      whole(p),
      whole(q),
      whole(exponent % (p - 1n)),
      whole(exponent % (q - 1n)),
      whole(inverse(q, p)),
      sequence(...further),
    ),
  })
  return {
    // Read once, it keeps what blinding its signatures takes as long as a signature to prepare.
    privateKey: key,
    publicKey: createPublicKey(key).export({ format: 'pem', type: 'spki' }) as string,
  }
}

export const { privateKey: PRIVATE_KEY, publicKey: PUBLIC_KEY } = callerKey()
