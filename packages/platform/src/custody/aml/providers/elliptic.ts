import { createHmac } from 'node:crypto'
import type { RiskLevel } from '../levels.ts'
import {
  isRefusal,
  isSameText,
  jsonOf,
  refusedToken,
  unusable,
  type Ask,
  type Provider,
  type ProviderHttp,
} from './provider.ts'

const SCREEN = '/v2/wallet/synchronous'
/** Path that requires a signed request; the health endpoint would accept any key. */
const LIST = '/v2/wallet'
const SCORE_MAX = 10

/** Parses `key:secret`, with the secret in base64; returns null if the text has another form. */
function readEllipticToken(token: string): { key: string; secret: Buffer } | null {
  const match = /^([^\s:]+):([A-Za-z0-9+/]+={0,2})$/.exec(token)
  if (!match) return null
  const secret = Buffer.from(match[2] as string, 'base64')
  return secret.length === 0 ? null : { key: match[1] as string, secret }
}

/**
 * Returns the headers of one request, with an HMAC-SHA256 over timestamp, method, path in lower
 * case, and the body (`{}` if there is none).
 */
function ellipticHeaders(
  { key, secret }: { key: string; secret: Buffer },
  timestampMs: number,
  method: string,
  path: string,
  body?: string,
): Record<string, string> {
  const timestamp = String(timestampMs)
  const sign = createHmac('sha256', secret)
    .update(`${timestamp}${method}${path.toLowerCase()}${body ?? '{}'}`)
    .digest('base64')
  return {
    'x-access-key': key,
    'x-access-timestamp': timestamp,
    'x-access-sign': sign,
    Accept: 'application/json',
    'Content-Type': 'application/json',
  }
}

/**
 * Adapter for Elliptic's wallet screening, which covers all chains and assets of an address in one
 * request.
 */
export function elliptic(
  base: string,
  http: ProviderHttp,
  [severe, high, medium]: readonly [number, number, number],
): Provider {
  const ask = (token: string, method: Ask['method'], path: string, body?: string) => {
    const credentials = readEllipticToken(token)
    if (!credentials) throw refusedToken(401)
    return http.ask({ provider: 'ELLIPTIC', token }, () => ({
      method,
      url: base + path,
      headers: ellipticHeaders(credentials, http.now(), method, path, body),
      ...(body === undefined ? {} : { body }),
    }))
  }
  const levelOf = (score: number): RiskLevel | null =>
    score >= severe
      ? 'SEVERE'
      : score >= high
        ? 'HIGH'
        : score >= medium
          ? 'MEDIUM'
          : score > 0
            ? 'LOW'
            : null
  return {
    async screen(token, { address }) {
      const body = JSON.stringify({
        subject: { asset: 'holistic', blockchain: 'holistic', type: 'address', hash: address },
        type: 'wallet_exposure',
        customer_reference: 'custody',
      })
      const answer = await ask(token, 'POST', SCREEN, body)
      if (isRefusal(answer)) throw refusedToken(answer.status)
      const { status, text } = answer
      // The address was never used on a chain. This is a clear response, and common for a new
      // destination.
      if (status === 404 && (jsonOf(text) as { name?: unknown }).name === 'NotInBlockchain')
        return null
      if (status !== 200 && status !== 201)
        throw unusable(`the provider did not screen the wallet (status ${status})`)
      const {
        risk_score: score,
        process_status: state,
        error,
        subject,
      } = jsonOf(text) as {
        risk_score?: unknown
        process_status?: unknown
        error?: unknown
        subject?: { hash?: unknown }
      }
      if (error !== undefined && error !== null) throw unusable('the analysis ended with an error')
      if (state !== undefined && state !== 'complete')
        throw unusable('the analysis is not complete')
      if (!isSameText(subject?.hash, address))
        throw unusable('the response is about another address')
      if (score === null) return null
      if (typeof score !== 'number' || !(score >= 0 && score <= SCORE_MAX))
        throw unusable('the response contains no known risk score')
      return levelOf(score)
    },
    async verifyToken(token) {
      if (!readEllipticToken(token)) return false
      const answer = await ask(token, 'GET', LIST)
      if (isRefusal(answer)) return false
      const { status, text } = answer
      if (status === 200 && Array.isArray((jsonOf(text) as { items?: unknown }).items)) return true
      throw unusable(`the provider returned status ${status} without a list`)
    },
  }
}
