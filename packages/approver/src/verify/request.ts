import { parseAmount, validateAddress } from '@custody/chains'
import type { ActFacts } from '@custody/policy'
import { AuthError, parseJson, transactionId } from '@custody/request-auth/web'
import { transferBody } from '@custody/request-auth/bodies'
import { createHash } from 'node:crypto'
import { ApproverError } from '../errors.ts'
import type { Place } from './place.ts'

/** The signed request of a caller, as the platform returns it. */
export interface CallerRequest {
  token: string
  method: string
  uri: string
  body: string
}

interface Claims {
  uri?: unknown
  nonce?: unknown
  sub?: unknown
  bodyHash?: unknown
}

const TRANSFER = '/dac/v1/transaction'

const differs = (field: string): never => {
  throw new ApproverError(
    'REQUEST',
    `the signed request of the caller does not match: ${field} differs`,
  )
}

function claimsOf(token: string): Claims {
  try {
    const [, claims = ''] = token.split('.')
    const value: unknown = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null ? value : differs('the token')
  } catch (error) {
    if (error instanceof ApproverError) throw error
    return differs('the token')
  }
}

/**
 * Compares the facts of a transfer with the signed request of its caller. The caller's signature
 * itself is not verified: the signer nodes do that, with the enrolled key.
 * @param id public ID of the transfer
 * @returns whether they were compared; other requests than transfers are not
 * @throws ApproverError `REQUEST`
 */
export function compareRequest(
  { chains }: Place,
  request: CallerRequest,
  id: string,
  { action, facts }: { action: string; facts: ActFacts },
): boolean {
  if (action !== 'transfer') return false
  const { uri, nonce, sub, bodyHash } = claimsOf(request.token)
  if (request.method !== 'POST' || request.uri.split('?')[0] !== TRANSFER || uri !== request.uri)
    differs('the path')
  if (createHash('sha256').update(request.body).digest('hex') !== bodyHash) differs('the body')
  if (transactionId(String(sub), String(nonce)) !== id) differs('the ID')
  const body = bodyOf(request.body)
  if (body.asset !== facts.asset) differs('the asset')
  if (parseAmount(body.amount, facts.decimals).toString() !== facts.amount) differs('the amount')
  const to = validateAddress(chains, body.asset, body.destination_address, body.address_tag ?? null)
  if (!to.valid || to.address !== facts.to) return differs('the destination')
  if (to.address_tag !== facts.tag) differs('the tag')
  return true
}

function bodyOf(text: string) {
  try {
    const parsed = transferBody.safeParse(parseJson(text))
    return parsed.success ? parsed.data : differs('the body')
  } catch (error) {
    if (error instanceof AuthError) return differs('the body')
    throw error
  }
}
