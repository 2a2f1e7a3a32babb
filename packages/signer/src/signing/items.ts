import {
  assemble,
  signing,
  type Registry,
  type SignatureBytes,
  type SignedTransaction,
  type SigningItem,
} from '@custody/chains'
import { fromHex, hex, sha256, sha256hex } from '../canonical.ts'
import type { Binding } from '../envelope.ts'
import type { Verdict } from '../policy/order.ts'

/** Returns the items to be signed, with their identification in every message about them. */
export function itemsOf(registry: Registry, verdicts: readonly Verdict[]): SigningItem[] {
  return verdicts.flatMap(({ order, key }) => signing(registry, order.unsigned, key.publicKeyAt))
}

/** Splits a list for all items of a run into one list for each transaction. */
export function split<T>(verdicts: readonly Verdict[], list: readonly T[]): T[][] {
  let end = 0
  return verdicts.map(({ order }) => {
    const begin = end
    end += order.unsigned.inputs.length
    return list.slice(begin, end)
  })
}

/** Returns a name of the data that one session signs; for a single transaction its own hash. */
export const unsignedOf = (verdicts: readonly Verdict[]): string =>
  verdicts.length === 1
    ? verdicts[0]!.unsignedHash
    : sha256hex(JSON.stringify(verdicts.map(({ unsignedHash }) => unsignedHash)))

export function bindingOf(
  verdicts: readonly Verdict[],
  items: readonly SigningItem[],
  session: string,
  round: number,
  participants: readonly number[],
): Binding {
  return {
    session,
    round,
    key: verdicts[0]!.key.key_id,
    path: sha256hex(JSON.stringify(items.map((item) => item.path))),
    digest: sha256hex(JSON.stringify(items.map((item) => hex(item.message)))),
    participants: [...participants],
  }
}

/** Returns the two nodes of a session, in ascending order. */
export const participantsOf = (node: number, partner: number): [number, number] =>
  node < partner ? [node, partner] : [partner, node]

/**
 * Returns one session ID per item, derived from random bytes of both participants and from the
 * signed data.
 */
export function sessionIds(
  base: {
    key: string
    epoch: number
    participants: readonly number[]
    fresh: readonly string[]
    unsigned: string
  },
  count: number,
): Buffer[] {
  const text = JSON.stringify([base.key, base.epoch, base.participants, base.fresh, base.unsigned])
  return Array.from({ length: count }, (_, at) =>
    sha256('custody/sign-session/v1\n', text, `\n${at}`),
  )
}

export interface WireSignature {
  signature: string
  recovery_id: number | null
}
export const toWire = (signatures: readonly SignatureBytes[]): WireSignature[] =>
  signatures.map(({ signature, recoveryId }) => ({
    signature: hex(signature),
    recovery_id: recoveryId,
  }))
export const fromWire = (signatures: readonly WireSignature[]): SignatureBytes[] =>
  signatures.map(({ signature, recovery_id }) => ({
    signature: fromHex(signature),
    recoveryId: recovery_id,
  }))

/**
 * Returns the signed transaction. Its `assemble` is the second verification of threshold rule 12:
 * with libsecp256k1 or OpenSSL, low-S, against the key at each path.
 */
export function finish(
  registry: Registry,
  verdict: Verdict,
  signatures: SignatureBytes[],
): SignedTransaction {
  return assemble(registry, verdict.order.unsigned, signatures, verdict.key.publicKeyAt)
}
