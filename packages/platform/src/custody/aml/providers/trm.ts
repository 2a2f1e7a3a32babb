import { higher, type RiskLevel } from '../levels.ts'
import {
  jsonOf,
  refusedToken,
  unusable,
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
export function trm(base: string, http: ProviderHttp, chains: Record<string, string>): Provider {
  const ask = async (token: string, { address, network }: Subject) => {
    const chain = chains[network] ?? CHAINS[network]
    if (chain === undefined) throw unusable(`TRM does not support the network ${network}`)
    const basic = Buffer.from(`${token}:${token}`).toString('base64')
    return http.ask(() => ({
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
    async screen(token, subject) {
      const { status, text } = await ask(token, subject)
      if (status === 401 || status === 403) throw refusedToken(status)
      return levelOf(status, text, subject)
    },
    async verifyToken(token) {
      const { status, text } = await ask(token, NOBODY)
      if (status === 401 || status === 403) return false
      levelOf(status, text, NOBODY)
      return true
    },
  }
}

function levelOf(status: number, text: string, subject: Subject): RiskLevel | null {
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
  if (typeof about !== 'string' || about.toLowerCase() !== subject.address.toLowerCase()) {
    throw unusable('the response is about another address')
  }
  if (!Array.isArray(indicators)) throw unusable('the response contains no list of risk indicators')
  const scores = [
    ...indicators.map(
      (each) => (each as { categoryRiskScoreLevel?: unknown } | null)?.categoryRiskScoreLevel,
    ),
    ...(Array.isArray(entities)
      ? entities.map((each) => (each as { riskScoreLevel?: unknown } | null)?.riskScoreLevel)
      : []),
  ]
  let match: RiskLevel | null = null
  for (const score of scores) {
    const level = LEVEL.get(score)
    if (level === undefined) throw unusable('a risk indicator has an unknown score')
    match = higher(match, level)
  }
  return match
}
