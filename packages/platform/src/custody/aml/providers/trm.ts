import { higher, type RiskLevel } from '../levels.ts'
import {
  isRefusal,
  isSameText,
  jsonOf,
  refusedToken,
  unusable,
  type Answer,
  type Provider,
  type ProviderHttp,
  type Subject,
} from './provider.ts'

const PATH = '/public/v2/screening/addresses'
const LEVEL = new Map<unknown, RiskLevel | null>([
  [15, 'SEVERE'],
  [10, 'HIGH'],
  [5, 'MEDIUM'],
  [1, 'LOW'],
  [0, null],
])
const NOBODY: Subject = { address: '0x0000000000000000000000000000000000000001', network: 'ETH' }

/** TRM's chain names by network code; an installation may override them. */
const CHAINS: Record<string, string> = {
  BTC: 'bitcoin',
  LTC: 'litecoin',
  DASH: 'dash',
  DOGE: 'dogecoin',
  BCH: 'bitcoin_cash',
  ETH: 'ethereum',
  BSC: 'binance_smart_chain',
  POL: 'polygon',
  BASE: 'base',
  ARB: 'arbitrum',
  AVAX: 'avalanche_c_chain',
  OP_ETH: 'optimism',
  FTM: 'fantom',
  CRO: 'cronos',
  ONE: 'harmony',
  KLAY: 'klaytn',
  TRX: 'tron',
  XRP: 'ripple',
  XLM: 'stellar',
  ADA: 'cardano',
  SOL: 'solana',
}

/**
 * Adapter for TRM wallet screening: each address is submitted with its chain. The highest score
 * among the results counts.
 */
export function trm(
  base: string,
  http: ProviderHttp,
  chains: Record<string, string>,
  exposureUsd = EXPOSURE_USD,
): Provider {
  const ask = async (token: string, { address, network }: Subject) => {
    const chain = chains[network] ?? CHAINS[network]
    if (chain === undefined) throw unusable(`TRM does not support the network ${network}`)
    const basic = Buffer.from(`${token}:${token}`).toString('base64')
    return http.ask({ provider: 'TRM', token }, () => ({
      method: 'POST',
      url: base + PATH,
      headers: {
        Authorization: `Basic ${basic}`,
        Accept: 'application/json',
        'Content-Type': 'application/json',
      },
      body: JSON.stringify([{ address, chain }]),
    }))
  }
  return {
    async screen(token, subject, alert) {
      const answer = await ask(token, subject)
      if (isRefusal(answer)) throw refusedToken(answer.status)
      const { decides, alerts } = judge(risksOf(answer, subject), exposureUsd)
      if (alerts !== null) alert?.(alerts)
      return decides
    },
    async verifyToken(token) {
      const answer = await ask(token, NOBODY)
      if (isRefusal(answer)) return false
      risksOf(answer, NOBODY)
      return true
    },
  }
}

/**
 * One risk that TRM reports. `kind`: how the address is connected with it; null: TRM names no or
 * another connection. `volumeUsd`: value of all transfers with it; null: not reported.
 */
export interface Risk {
  level: RiskLevel | null
  kind: 'OWNERSHIP' | 'COUNTERPARTY' | 'INDIRECT' | null
  volumeUsd: number | null
}

/** Value in USD from which transfers with a flagged counterparty decide, by default. */
export const EXPOSURE_USD = 100

/**
 * Returns the level that decides about an address, and the highest level that does not.
 *
 * - Ownership of the address by a flagged entity decides, and so does a risk without a connection.
 * - Direct exposure, transfers with a flagged counterparty, decides from `exposureUsd` on. Smaller
 *   amounts, also none, only alert: anyone can send dust to an address.
 * - Indirect exposure only alerts.
 */
export function judge(
  risks: readonly Risk[],
  exposureUsd: number,
): { decides: RiskLevel | null; alerts: RiskLevel | null } {
  let [decides, alerts]: (RiskLevel | null)[] = [null, null]
  for (const { level, kind, volumeUsd } of risks) {
    const isDecisive =
      kind === null ||
      kind === 'OWNERSHIP' ||
      (kind === 'COUNTERPARTY' && volumeUsd !== null && volumeUsd >= exposureUsd)
    if (isDecisive) decides = higher(decides as RiskLevel | null, level)
    else alerts = higher(alerts as RiskLevel | null, level)
  }
  return { decides: decides as RiskLevel | null, alerts: alerts as RiskLevel | null }
}

const KINDS = ['OWNERSHIP', 'COUNTERPARTY', 'INDIRECT'] as const

/**
 * Returns a level. TRM reports null for a category without a configured level, which is no risk.
 * @throws ProviderError if the score is not a documented one
 */
function readLevel(score: unknown): RiskLevel | null {
  const level = score === null ? null : LEVEL.get(score)
  if (level === undefined) throw unusable('a risk indicator has an unknown score')
  return level
}

/** Returns a volume, which TRM reports as a decimal string. */
function readVolume(value: unknown): number | null {
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && /^\d+(\.\d+)?(e[+-]?\d{1,3})?$/i.test(text)
    ? Number(text)
    : null
}

function riskOf(indicator: unknown): Risk {
  const fields = (indicator ?? {}) as Record<string, unknown>
  const kind = String(fields['riskType']).toUpperCase()
  return {
    level: readLevel(fields['categoryRiskScoreLevel']),
    kind: KINDS.find((each) => each === kind) ?? null,
    volumeUsd: readVolume(fields['totalVolumeUsd']),
  }
}

function risksOf({ status, text }: Answer, subject: Subject): Risk[] {
  if (status !== 200 && status !== 201)
    throw unusable(`the provider did not screen the address (status ${status})`)
  const list = jsonOf(text)
  if (!Array.isArray(list) || list.length !== 1)
    throw unusable('the response does not contain exactly one result')
  const {
    address,
    addressSubmitted,
    addressRiskIndicators: indicators,
    entities,
  } = (list[0] ?? {}) as {
    address?: unknown
    addressSubmitted?: unknown
    addressRiskIndicators?: unknown
    entities?: unknown
  }
  const about = typeof addressSubmitted === 'string' ? addressSubmitted : address
  if (!isSameText(about, subject.address)) throw unusable('the response is about another address')
  if (!Array.isArray(indicators)) throw unusable('the response contains no list of risk indicators')
  return [
    ...indicators.map(riskOf),
    // Entities that the address belongs to.
    ...(Array.isArray(entities) ? entities : []).map((each): Risk => ({
      level: readLevel((each as { riskScoreLevel?: unknown } | null)?.riskScoreLevel),
      kind: 'OWNERSHIP',
      volumeUsd: null,
    })),
  ]
}
