import { VerificationError } from '../trust/errors.ts'
import type { PinnedTrust } from '../trust/trust.ts'
import { AddressVerifier } from '../trust/verifier.ts'
import { sha256Hex } from './hashes.ts'
import {
  amountOf,
  assertFields,
  readCanonical,
  wrong,
  type Holdings,
  type Statement,
} from './statement.ts'

type HeldAt = Holdings['addresses'][number]

/** Returns the verifier for a workspace's addresses. Each path contains its own sub-account. */
function verifierOf(trust: PinnedTrust, { keys }: Holdings, workspace: string): AddressVerifier {
  const verifier = new AddressVerifier({ ...trust, workspace })
  for (const key of keys.filter((each) => each?.workspace === workspace))
    verifier.takeKey({ keys: [key] }, key.curve)
  return verifier
}

async function assertDerived(verifier: AddressVerifier, at: HeldAt): Promise<void> {
  const derived = await verifier.addressOn(at.network, at.path)
  if (derived === at.address) return
  const path = Array.isArray(at.path) ? at.path.join('/') : String(at.path)
  wrong(
    `the ${at.network} address ${String(at.address)} is not at ${path} of ${at.workspace}’s certified key`,
    {
      actual: String(at.address),
      ...(derived === null ? {} : { expected: derived }),
    },
  )
}

/**
 * Verifies a list of addresses: the statement binds exactly this list, every address is derived
 * from a key that the pinned nodes certified, and the amounts add up to the stated ones. The actual
 * balance of an address must be checked on the chain.
 *
 * @param text canonical JSON, exactly as published
 * @throws VerificationError
 */
export async function verifyHoldings(
  statement: Statement,
  text: string,
  trust: PinnedTrust,
): Promise<Holdings> {
  const sha256 = sha256Hex(text)
  if (sha256 !== statement.holdings.sha256) {
    wrong('the list of addresses is not the one that the statement commits to', {
      expected: statement.holdings.sha256,
      actual: sha256,
    })
  }
  const holdings = readCanonical(text, 'list of addresses') as unknown as Holdings
  assertFields(holdings, ['version', 'id', 'keys', 'addresses'], 'the list of addresses')
  const { addresses, keys } = holdings
  if (
    !Array.isArray(addresses) ||
    !Array.isArray(keys) ||
    addresses.length !== statement.holdings.addresses
  ) {
    return wrong('the list of addresses has another length than the statement says')
  }
  const verifiers = new Map<string, AddressVerifier>()
  const seen = new Set<string>()
  const sums = new Map<string, bigint>()
  for (const at of addresses) {
    assertFields(at, ['workspace', 'network', 'address', 'path', 'held'], 'an address of the list')
    if (seen.has(`${at.network} ${at.address}`)) wrong(`${at.address} is in the list twice`)
    seen.add(`${at.network} ${at.address}`)
    const verifier = verifiers.get(at.workspace) ?? verifierOf(trust, holdings, at.workspace)
    verifiers.set(at.workspace, verifier)
    await assertDerived(verifier, at)
    if (!Array.isArray(at.held)) wrong(`${at.address} has no balance`)
    const forms = new Set<string>()
    for (const { asset, form, amount } of at.held) {
      if (forms.has(`${asset} ${form}`)) wrong(`${at.address} has ${asset} twice`)
      forms.add(`${asset} ${form}`)
      if (verifier.networkCodeOf(asset) !== at.network) wrong(`${at.address} cannot hold ${asset}`)
      sums.set(asset, (sums.get(asset) ?? 0n) + amountOf(amount, `what ${at.address} holds`))
    }
  }
  for (const { asset, held } of statement.assets) {
    const sum = String(sums.get(asset) ?? 0n)
    if (sum !== held)
      wrong(`the listed addresses hold ${sum} of ${asset}, but the statement says ${held}`, {
        expected: held,
        actual: sum,
      })
    sums.delete(asset)
  }
  const [more] = [...sums].find(([, sum]) => sum > 0n) ?? []
  if (more !== undefined)
    throw new VerificationError(
      'RESERVES',
      `the list contains ${more}, which the statement does not contain`,
    )
  return holdings
}
