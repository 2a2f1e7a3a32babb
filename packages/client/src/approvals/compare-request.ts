import { ChainError, parseAmount } from '@custody/chains/verify'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { ActFacts } from '@custody/policy'
import { AuthError, parseJson, transactionId } from '@custody/request-auth/web'
import { parsedBy, ruleBody, stakeBody, transferBody } from '@custody/request-auth/bodies'
import { refuse } from './errors.ts'
import type { Place } from './place.ts'
import type { CallerRequest } from './shapes.ts'
import { claimsOf, type TokenClaims } from './token.ts'

type Schema<T> = Parameters<typeof parsedBy<T>>[0]

/**
 * Paths of the requests from which facts can be derived. As at the signer nodes (`actionOf`), the
 * match is exact: they sign nothing for a request with a query.
 */
const PATHS = {
  transfer: /^\/dac\/v1\/transaction$/,
  refund: /^\/dac\/v1\/invoices\/inv_[0-9a-f]{32}\/refund$/,
  stake: /^\/dav\/v1\/stake$/,
  forward: /^\/dac\/v1\/auto-forwarding$/,
}
/** Number of decimals with which the signer nodes store `fee_rate`. */
const FEE_RATE_DECIMALS = 12

const hashOf = (text: string): string => bytesToHex(sha256(utf8ToBytes(text)))

const differs = (field: string): never =>
  refuse('REQUEST', `the signed request of the caller does not match: ${field} differs`)

/** What a request means, as the signer nodes read it. */
interface Meaning {
  asset: string
  /** Null for a forward. */
  amount: string | null
  to: string
  tag: string | null
  resource: string | null
  standing: ActFacts['standing']
  /** Hash of the content, which people sign as `subject`. */
  subject: string
}

function bodyOf<T>(schema: Schema<T>, text: string): T {
  try {
    const parsed = parsedBy(schema, parseJson(text))
    return parsed?.success ? parsed.data : differs('the body')
  } catch (error) {
    if (error instanceof AuthError) return differs('the body')
    throw error
  }
}

function amountOf(text: string, decimals: number, field: string): string {
  try {
    return parseAmount(text, decimals).toString()
  } catch (error) {
    if (error instanceof ChainError) return differs(field)
    throw error
  }
}

/** Returns the name of the content: `sequence_id` names it within its wallet (signer, rule 4). */
function keyOf(
  place: Place,
  { sub, nonce }: TokenClaims,
  { name, asset, sequence }: { name: string; asset: string; sequence: string | undefined },
): string {
  const { workspace, sub_account_index: index } = place
  return JSON.stringify(
    sequence === undefined
      ? [name, 'nonce', sub, nonce]
      : ['pay', 'sequence', workspace, index, asset, sequence],
  )
}

function payment(place: Place, claims: TokenClaims, text: string, decimals: number): Meaning {
  const body = bodyOf(transferBody, text)
  const { asset, sequence_id: sequence, fee_rate, fee_level } = body
  const amount = amountOf(body.amount, decimals, 'the amount')
  const tag = body.address_tag ?? null
  const to = validated(place, asset, body.destination_address, tag)
  const key = keyOf(place, claims, { name: 'pay', asset, sequence })
  const meaning = {
    workspace: place.workspace,
    sub_account: place.sub_account_index,
    asset,
    amount,
    destination: to.address,
    tag: to.address_tag,
    fee_rate: fee_rate === undefined ? null : amountOf(fee_rate, FEE_RATE_DECIMALS, 'the fee rate'),
    fee_level: fee_level ?? null,
  }
  const subject = hashOf(JSON.stringify([key, meaning]))
  return {
    asset,
    amount,
    to: to.address,
    tag: to.address_tag,
    resource: null,
    standing: null,
    subject,
  }
}

function stake(place: Place, claims: TokenClaims, text: string, decimals: number): Meaning {
  const { asset, address, resource, sequence_id: sequence, ...body } = bodyOf(stakeBody, text)
  const amount = amountOf(body.amount, decimals, 'the amount')
  const to = validated(place, asset, address, null)
  const key = keyOf(place, claims, { name: 'stake', asset, sequence })
  const meaning = {
    workspace: place.workspace,
    sub_account: place.sub_account_index,
    asset,
    address: to.address,
    resource,
    amount,
  }
  const subject = hashOf(JSON.stringify([key, 'stake', meaning]))
  return { asset, amount, to: to.address, tag: null, resource, standing: null, subject }
}

function forward(place: Place, claims: TokenClaims, text: string, decimals: number): Meaning {
  const body = bodyOf(ruleBody, text)
  const { asset } = body
  const tag = body.address_tag ?? null
  const to = validated(place, asset, body.destination_address, tag)
  const standing = {
    min_amount: amountOf(body.min_amount, decimals, 'the smallest forward'),
    daily_cap: amountOf(body.daily_cap, decimals, 'the largest sum of 24 hours'),
    ends_at: body.expires_at.getTime() / 1000,
  }
  const key = keyOf(place, claims, { name: 'forward', asset, sequence: undefined })
  const meaning = {
    workspace: place.workspace,
    sub_account: place.sub_account_index,
    asset,
    min_amount: standing.min_amount,
    daily_cap: standing.daily_cap,
    destination: to.address,
    tag: to.address_tag,
    expires_at: standing.ends_at,
  }
  const subject = hashOf(JSON.stringify([key, meaning]))
  const { address, address_tag } = to
  return { asset, amount: null, to: address, tag: address_tag, resource: null, standing, subject }
}

const MEANINGS = { transfer: payment, refund: payment, stake, forward }

function validated({ registry }: Place, asset: string, address: string, tag: string | null) {
  const checked = registry.asset(asset) && registry.validate(asset, address, tag)
  return checked?.valid ? checked : differs('the destination')
}

/**
 * Compares the facts of a transfer with the signed request of its caller. The caller's signature
 * itself is not verified here: `assertCaller` does that, and the signer nodes do, with the enrolled
 * key.
 * @param id public ID of the transfer; of a forward, that of its rule
 * @returns the claims of the request
 * @throws ApprovalError `REQUEST`
 */
export function compareRequest(
  place: Place,
  request: CallerRequest,
  id: string,
  signed: { action: keyof typeof PATHS; facts: ActFacts; subject: string },
): TokenClaims {
  const { action, facts } = signed
  const claims = claimsOf(request.token)
  if (request.method !== 'POST' || !PATHS[action].test(request.uri) || claims.uri !== request.uri)
    differs('the path')
  if (claims.method !== undefined && claims.method !== request.method) differs('the method')
  if (hashOf(request.body) !== claims.bodyHash) differs('the body')
  if (transactionId(claims.sub, claims.nonce) !== id) differs('the ID')
  const meaning = MEANINGS[action](place, claims, request.body, facts.decimals)
  const own = meaning.standing
  for (const [field, ours, theirs] of [
    ['the asset', meaning.asset, facts.asset],
    ['the amount', meaning.amount, facts.amount],
    ['the destination', meaning.to, facts.to],
    ['the tag', meaning.tag, facts.tag],
    ['the resource', meaning.resource, facts.resource],
    ['the smallest forward', own?.min_amount, facts.standing?.min_amount],
    ['the largest sum of 24 hours', own?.daily_cap, facts.standing?.daily_cap],
    ['the end', own?.ends_at, facts.standing?.ends_at],
    ['the hash of its content', meaning.subject, signed.subject],
  ] as const)
    if (ours !== theirs) differs(field)
  return claims
}
