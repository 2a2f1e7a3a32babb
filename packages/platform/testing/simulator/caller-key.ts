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
 * Returns the first prime after a number derived from a name's digests. Its two highest bits are
 * set, so that the modulus has its full length.
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

/** Returns the modular inverse of `value`, by the extended Euclidean algorithm. */
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
 * Returns the key of all callers of a simulation: RSA of 4096 bits with four primes (RFC 8017,
 * 3.2). It signs in a third of the time of a key with two primes, and is verified like any other
 * key. The key is the same on every machine, because signed data affects the run of a seed.
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
    // Loads the key once: preparing its blinding takes as long as a signature, and is then cached.
    privateKey: key,
    publicKey: createPublicKey(key).export({ format: 'pem', type: 'spki' }) as string,
  }
}

export const { privateKey: PRIVATE_KEY, publicKey: PUBLIC_KEY } = callerKey()
