import { decode, signing, type DecodedTransaction, type UnsignedTransaction } from '@custody/chains'
import type { Engine } from '../../../../signer/src/sessions/engine.ts'
import { hashOfUnsigned } from '@custody/request-auth/orders'
import { engineDouble } from '../../../../signer/testing/engine-double.ts'
import { registry } from '../../../../signer/testing/signer-cluster.ts'
import type { ClusterKeys } from './cluster-keys.ts'
import type { SignOptions, SignResult } from './engine-types.ts'

/** A transaction of a run, and whether it is signed. */
export interface Known {
  hash: string
  unsigned: UnsignedTransaction
  decoded: DecodedTransaction
  /** Name of the payment or sweep that it is for. */
  step: string
  /** Results by item; null: no node has the signature of that item. */
  results: (SignResult | null)[]
  /** Nodes that took part in the sessions that made the signatures. */
  signers: Set<number>
  /** Simulated time at which all signatures existed; null: not yet. */
  signedAtMs: number | null
}

/**
 * All transactions of a run, and which of them are signed. A transaction counts as signed as soon as
 * the engine of any node, also of the hostile one, has completed the signatures of all its items,
 * whether or not this node sends them to anybody.
 */
export class Signatures {
  readonly known = new Map<string, Known>()
  readonly #items = new Map<string, { known: Known; at: number }>()
  readonly #keys: ClusterKeys
  readonly #now: () => number
  /** Called when a transaction is signed. */
  onSigned: (known: Known) => void = () => {}

  constructor(keys: ClusterKeys, now: () => number) {
    this.#keys = keys
    this.#now = now
  }

  /** Registers a transaction before it is ordered. */
  note(unsigned: UnsignedTransaction, step: string): Known {
    const hash = hashOfUnsigned(unsigned)
    const existing = this.known.get(hash)
    if (existing) return existing
    const { curve } = registry.network(unsigned.network)!
    const at = this.#keys.whole.at[curve]
    const items = signing(registry, unsigned, at)
    const known: Known = {
      hash,
      unsigned,
      decoded: decode(registry, unsigned, at),
      step,
      results: items.map(() => null),
      signers: new Set(),
      signedAtMs: null,
    }
    this.known.set(hash, known)
    items.forEach(({ message, path }, index) => {
      this.#items.set(nameOf(message, path), { known, at: index })
    })
    return known
  }

  /** Returns the engine of a node, which reports what it completes. */
  engineOf(_node: number): Engine {
    return {
      ...engineDouble,
      startSign: (options) => {
        const session = engineDouble.startSign(options)
        return {
          step: async (inbox) => {
            const step = await session.step(inbox)
            if (step.kind === 'done') this.#complete(options, step.result)
            return step
          },
          abort: () => session.abort(),
        }
      },
    }
  }

  #complete(
    { message, path, participants }: Pick<SignOptions, 'message' | 'path' | 'participants'>,
    result: SignResult,
  ): void {
    const item = this.#items.get(nameOf(message, path))
    if (!item) throw new Error('an unregistered transaction was signed')
    const { known, at } = item
    known.results[at] ??= result
    for (const node of participants) known.signers.add(node)
    if (known.signedAtMs !== null || known.results.includes(null)) return
    known.signedAtMs = this.#now()
    this.onSigned(known)
  }

  get signed(): Known[] {
    return [...this.known.values()].filter(({ signedAtMs }) => signedAtMs !== null)
  }
}

const nameOf = (message: Uint8Array, path: readonly number[]): string =>
  `${Buffer.from(message).toString('hex')} ${path.join('/')}`
