import type { HttpAnswer, HttpRequest } from '../http-server.ts'
import type { Oddity } from './faults.ts'
import type { RiskLevel } from './risks.ts'

const SCORES: Record<RiskLevel, [number, string]> = {
  SEVERE: [15, 'Severe'],
  HIGH: [10, 'High'],
  MEDIUM: [5, 'Medium'],
  LOW: [1, 'Low'],
}
const ADDRESSES_MAX = 10

const answer = (status: number, body: unknown): HttpAnswer => ({
  status,
  body: JSON.stringify(body),
})

/** A category for which the organisation has set no level. */
const unrated = {
  category: 'Unrated local entity',
  categoryId: '3',
  incomingVolumeUsd: '0',
  outgoingVolumeUsd: '0',
  riskType: 'OWNERSHIP',
  totalVolumeUsd: '0',
}

/** Returns the risk of transfers with a flagged party. */
const counterparty = (score: number, label: string, usd: string) => ({
  category: 'Local test entity',
  categoryId: '1',
  categoryRiskScoreLevel: score,
  categoryRiskScoreLevelLabel: label,
  incomingVolumeUsd: usd,
  outgoingVolumeUsd: '0',
  riskType: 'COUNTERPARTY',
  totalVolumeUsd: usd,
})

/** Returns the risks of an address with a level. */
const riskIndicators = (score: number, label: string) => [
  {
    category: 'Local test entity',
    categoryId: '1',
    categoryRiskScoreLevel: score,
    categoryRiskScoreLevelLabel: label,
    incomingVolumeUsd: '0',
    outgoingVolumeUsd: '0',
    riskType: 'OWNERSHIP',
    totalVolumeUsd: '0',
  },
  {
    category: 'Exchange',
    categoryId: '2',
    categoryRiskScoreLevel: 1,
    categoryRiskScoreLevelLabel: 'Low',
    incomingVolumeUsd: '0',
    outgoingVolumeUsd: '0',
    riskType: 'COUNTERPARTY',
    totalVolumeUsd: '0',
  },
]

/** Wallet Screening, v2: a list of addresses with their chains, and one result for each. */
export function trm(
  { method, path, headers, body }: HttpRequest,
  key: string,
  levelOf: (address: string) => RiskLevel | null,
  oddity: Oddity | null,
): HttpAnswer {
  if (headers['authorization'] !== `Basic ${Buffer.from(`${key}:${key}`).toString('base64')}`) {
    return answer(401, { code: 401, name: 'Unauthorized', message: 'Invalid credentials' })
  }
  if (path !== '/public/v2/screening/addresses' || method !== 'POST') {
    return answer(404, { code: 404, name: 'NotFound', message: 'Not Found' })
  }
  const requests = JSON.parse(body) as { address?: unknown; chain?: unknown }[]
  if (
    !Array.isArray(requests) ||
    requests.length === 0 ||
    requests.length > ADDRESSES_MAX ||
    requests.some(
      ({ address, chain }) =>
        typeof address !== 'string' || typeof chain !== 'string' || !/^[a-z_]+$/.test(chain),
    )
  ) {
    return answer(400, {
      code: 400,
      name: 'BadRequest',
      message: `a list of 1 to ${ADDRESSES_MAX} addresses with their chains is expected`,
    })
  }
  return answer(
    201,
    requests.map(({ address, chain }) => {
      const level = levelOf(String(address))
      const [score, label] = level === null ? [0, 'Unknown'] : SCORES[level]
      return {
        accountExternalId: null,
        address: oddity === 'lower-case' ? String(address).toLowerCase() : address,
        addressSubmitted: oddity === 'lower-case' ? String(address).toLowerCase() : address,
        chain,
        externalId: null,
        addressIncomingVolumeUsd: '0',
        addressOutgoingVolumeUsd: '0',
        addressTotalVolumeUsd: '0',
        addressRiskIndicators:
          oddity === 'nulls'
            ? [{ ...unrated, categoryRiskScoreLevel: null, categoryRiskScoreLevelLabel: null }]
            : level === null
              ? []
              : oddity === 'dust'
                ? [counterparty(score, label, '0.01')]
                : riskIndicators(score, label),
        entities: [],
        trmAppUrl: `https://app.trmlabs.com/address/${String(address)}`,
      }
    }),
  )
}
