import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import type { HttpAnswer, HttpRequest } from '../http-server.ts'
import type { Oddity } from './faults.ts'
import type { RiskLevel } from './risks.ts'

const SCORES: Record<RiskLevel, number> = { SEVERE: 10, HIGH: 8, MEDIUM: 5, LOW: 1.5 }
const CLOCK_SKEW_MS_MAX = 5 * 60_000

const answer = (status: number, body: unknown): HttpAnswer => ({
  status,
  body: JSON.stringify(body),
})

/**
 * Returns base64(HMAC-SHA256(decoded secret, timestamp + METHOD + path in lower case + body)). An
 * absent body counts as `{}`.
 */
function ellipticSignature(
  secret: string,
  timestamp: string,
  method: string,
  path: string,
  body: string,
): string {
  return createHmac('sha256', Buffer.from(secret, 'base64'))
    .update(timestamp + method.toUpperCase() + path.toLowerCase() + (body === '' ? '{}' : body))
    .digest('base64')
}

function isSigned(
  { method, path, query, headers, body }: HttpRequest,
  key: string,
  secret: string,
): boolean {
  const timestamp = String(headers['x-access-timestamp'] ?? '')
  if (
    headers['x-access-key'] !== key ||
    !/^\d{13}$/.test(timestamp) ||
    Math.abs(Date.now() - Number(timestamp)) > CLOCK_SKEW_MS_MAX
  ) {
    return false
  }
  const expected = Buffer.from(ellipticSignature(secret, timestamp, method, path + query, body))
  const signature = Buffer.from(String(headers['x-access-sign'] ?? ''))
  return signature.length === expected.length && timingSafeEqual(signature, expected)
}

/** AML API v2: a wallet is screened in one synchronous call. */
export function elliptic(
  request: HttpRequest,
  key: string,
  secret: string,
  levelOf: (address: string) => RiskLevel | null,
  oddity: Oddity | null,
): HttpAnswer {
  if (!isSigned(request, key, secret))
    return answer(401, { name: 'Unauthorized', message: 'Unauthorized' })
  const { method, path, body } = request
  if (path === '/v2/wallet' && method === 'GET')
    return answer(200, { items: [], page: 1, per_page: 20, pages: 0, total: 0 })
  if (path !== '/v2/wallet/synchronous' || method !== 'POST')
    return answer(404, { name: 'NotFound', message: 'Not Found' })
  const {
    subject,
    type,
    customer_reference: reference,
  } = JSON.parse(body) as {
    subject?: Record<string, unknown>
    type?: unknown
    customer_reference?: unknown
  }
  if (
    type !== 'wallet_exposure' ||
    subject?.['type'] !== 'address' ||
    typeof subject['hash'] !== 'string' ||
    subject['asset'] !== 'holistic' ||
    subject['blockchain'] !== 'holistic'
  ) {
    return answer(400, { name: 'BadRequest', message: 'subject is not a wallet' })
  }
  const level = levelOf(subject['hash'])
  const score = level === null || oddity === 'nulls' ? null : SCORES[level]
  const now = new Date().toISOString()
  return answer(200, {
    id: randomUUID(),
    type,
    subject:
      oddity === 'lower-case' ? { ...subject, hash: subject['hash'].toLowerCase() } : subject,
    customer: { id: randomUUID(), reference },
    team_id: randomUUID(),
    created_at: now,
    updated_at: now,
    analysed_at: now,
    analysed_by: { id: randomUUID(), type: 'api_key' },
    asset_tier: 'full',
    process_status: 'complete',
    error: null,
    risk_score: score,
    risk_score_detail: { source: score, destination: score },
    evaluation_detail: { source: [], destination: [] },
    contributions: { source: [], destination: [] },
    cluster_entities: [],
    blockchain_info: { cluster: { inflow_value: { usd: 0 }, outflow_value: { usd: 0 } } },
  })
}
