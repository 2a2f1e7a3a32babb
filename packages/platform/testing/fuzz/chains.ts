import {
  ChainError,
  exclusive,
  familyOf,
  formatAmount,
  loadRegistry,
  parseAmount,
  paymentUri,
  withNonce,
  type DecodedTransaction,
  type UnsignedTransaction,
} from '@custody/chains'
import { addresses, corpus, type Sample } from './corpus.ts'
import { mutateBytes, mutateText, oddText, type SeededRandom } from './seeded-random.ts'
import { Found } from './run.ts'

/**
 * Maximum processor time of a decoder in milliseconds; a slower decoder would block a node with a
 * few kilobytes.
 */
const CPU_MS_MAX = 1000
const registry = loadRegistry('local')
const samples = corpus()
const knownAddresses = addresses()
const others = samples.map(({ unsigned }) => Buffer.from(unsigned.bytes, 'hex'))

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const fromHex = (text: string): Uint8Array => Buffer.from(text, 'hex')

/**
 * Calls a function and checks that it returns, or throws an error of the chain layer, within the
 * time limit.
 * @returns its result, or null if it threw such an error
 */
function run<T>(what: string, input: unknown, ask: () => T): T | null {
  const before = process.cpuUsage()
  let answer: T | null = null
  try {
    answer = ask()
  } catch (error) {
    if (!(error instanceof ChainError))
      throw new Found(`${what} threw what is no ChainError`, input, error)
  }
  const { user, system } = process.cpuUsage(before)
  if ((user + system) / 1000 > CPU_MS_MAX)
    throw new Found(`${what} took too long`, { ms: (user + system) / 1000, input })
  return answer
}

function mutated(random: SeededRandom, { unsigned }: Sample): UnsignedTransaction {
  const next = structuredClone(unsigned)
  if (!random.in100(20)) next.bytes = hex(mutateBytes(random, fromHex(unsigned.bytes), others))
  const index = () => random.of([0, 1, 2 ** 31 - 1, random.below(2 ** 31)])
  if (random.in100(10))
    next.inputs = Array.from({ length: 1 + random.below(4) }, () =>
      structuredClone(random.of(unsigned.inputs)),
    )
  for (const input of next.inputs) {
    if (random.in100(8)) input.path = Array.from({ length: random.below(9) }, index)
    if (input.previous !== undefined && random.in100(30)) {
      if (random.in100(15)) delete input.previous
      else input.previous = hex(mutateBytes(random, fromHex(input.previous), others))
    } else if (random.in100(5)) input.previous = hex(random.of(others))
  }
  if (random.in100(10))
    next.change = {
      output: random.of([0, 1, 2, 2 ** 31, 2 ** 53 - 1]),
      path: Array.from({ length: random.below(9) }, index),
    }
  if (random.in100(5)) delete next.change
  return next
}

function wrongOf({ payments, fee_max: fee, consumes, from }: DecodedTransaction): string | null {
  if (
    payments.some(
      ({ amount, address }) =>
        typeof amount !== 'bigint' || amount < 0n || typeof address !== 'string',
    )
  )
    return 'a payment is of no kind'
  if (typeof fee !== 'bigint' || fee < 0n) return 'the fee is of no kind'
  return Array.isArray(consumes) && from.every((address) => typeof address === 'string')
    ? null
    : 'who pays is of no kind'
}

function decoding(random: SeededRandom, count: (kind: string) => void): void {
  const sample = random.of(samples)
  const { network, assets, publicKeyAt } = sample
  const family = familyOf(network)
  const unsigned = mutated(random, sample)
  const input = { network: network.code, unsigned }
  const decoded = run('decode', input, () => family.decode(network, unsigned, assets, publicKeyAt))
  const items = run('signing', input, () => family.signing(network, unsigned, publicKeyAt))
  count(`${network.family}: ${decoded ? 'decoded' : 'refused'}`)
  if (decoded) {
    const wrong = wrongOf(decoded)
    if (wrong) throw new Found(wrong, { ...input, decoded })
    if (!items) throw new Found('it decodes, and cannot be signed', input)
    const right = family.decode(network, sample.unsigned, assets, publicKeyAt)
    if (
      run('exclusive', input, () => exclusive(registry, right, decoded)) !==
      run('exclusive', input, () => exclusive(registry, decoded, right))
    )
      throw new Found('exclusive is one way only', input)
  }
  if (random.in100(30)) {
    const signatures = Array.from({ length: random.below(4) }, () => ({
      signature: random.bytes(random.of([64, 64, 0, 63, 65])),
      recoveryId: random.of([null, 0, 1, 3, 4, -1]),
    }))
    if (
      run('assemble', { ...input, signatures }, () =>
        family.assemble(network, unsigned, signatures, publicKeyAt),
      ) &&
      signatures.length > 0
    )
      throw new Found('signatures of chance were put in', { ...input, signatures })
  }
  if (random.in100(10))
    run('withNonce', input, () =>
      withNonce(
        network,
        unsigned,
        random.of([0n, 1n, -1n, 2n ** 31n, 2n ** 53n, 2n ** 64n, 2n ** 256n]),
      ),
    )
}

function addressing(random: SeededRandom, count: (kind: string) => void): void {
  const { address: right } = random.of(knownAddresses)
  const { network } = random.of(knownAddresses)
  const family = familyOf(network)
  const address = random.in100(10) ? right : mutateText(random, right)
  const tag = random.of([null, undefined, oddText(random), mutateText(random, '123456')])
  const input = { network: network.code, address, tag }
  const checked = run('validate', input, () => family.validate(network, address, tag))
  if (checked === null) throw new Found('validate refused to say', input)
  count(`${network.family} address: ${checked.valid ? 'valid' : 'not valid'}`)
  if (checked.valid) {
    const again = run('validate', input, () =>
      family.validate(network, checked.address, checked.address_tag),
    )
    if (
      !again?.valid ||
      again.address !== checked.address ||
      again.address_tag !== checked.address_tag
    )
      throw new Found('what it calls the address it does not know', { ...input, checked, again })
    const asset = registry.assetsOf(network.code)[0]
    if (asset)
      run('paymentUri', input, () =>
        paymentUri(network, asset, {
          address: checked.address,
          addressTag: checked.address_tag,
          amount: 15n,
        }),
      )
  } else if (typeof checked.reason !== 'string' || checked.reason.length > 1000)
    throw new Found('the reason is none', { ...input, checked })
  run('key', input, () => family.key?.(address))
  run('format', input, () => family.format?.(network, address))
  run('accountOf', input, () => family.accountOf?.(address))
}

function amounts(random: SeededRandom): void {
  const text = random.in100(50) ? oddText(random) : mutateText(random, '123.456')
  const decimals = random.of([0, 6, 8, 18, 77])
  const amount = run('parseAmount', { text, decimals }, () => parseAmount(text, decimals))
  if (amount === null) return
  const shown = formatAmount(amount, decimals)
  if (parseAmount(shown, decimals) !== amount)
    throw new Found('an amount does not come back', { text, decimals, amount, shown })
}

/** Runs a case with the decoders of the chains: transactions, addresses, amounts. */
export function chains(random: SeededRandom, count: (kind: string) => void): void {
  const turn = random.below(100)
  if (turn < 70) decoding(random, count)
  else if (turn < 96) addressing(random, count)
  else amounts(random)
}
