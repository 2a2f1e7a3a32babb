import type { HttpAnswer, HttpRequest } from '../http-server.ts'
import type { Oddity } from './faults.ts'
import type { RiskLevel } from './risks.ts'

const PATH = '/api/risk/v2/entities'
const WORDS: Record<RiskLevel, string> = {
  SEVERE: 'Severe',
  HIGH: 'High',
  MEDIUM: 'Medium',
  LOW: 'Low',
}

const answer = (status: number, body: unknown): HttpAnswer => ({
  status,
  body: JSON.stringify(body),
})

/** Address Screening, v2: an address is registered, then queried. There is no level below Low. */
export class Chainalysis {
  /** Kept in memory only, because callers register an address before each query. */
  readonly #registered = new Set<string>()

  handle(
    { method, path, headers, body }: HttpRequest,
    key: string,
    levelOf: (address: string) => RiskLevel | null,
    oddity: Oddity | null,
  ): HttpAnswer {
    if (headers['token'] !== key) return answer(403, { message: 'Forbidden' })
    if (path === PATH && method === 'POST') {
      const { address } = JSON.parse(body) as { address?: unknown }
      if (typeof address !== 'string' || address === '')
        return answer(400, { message: 'address is required' })
      this.#registered.add(address)
      return answer(201, { address })
    }
    if (path.startsWith(`${PATH}/`) && method === 'GET') {
      const address = decodeURIComponent(path.slice(PATH.length + 1))
      if (!this.#registered.has(address))
        return answer(404, { message: `${address} has not been registered` })
      const level = levelOf(address)
      return answer(200, {
        address: oddity === 'lower-case' ? address.toLowerCase() : address,
        risk: WORDS[level ?? 'LOW'],
        riskReason:
          level === null || level === 'LOW'
            ? null
            : `Identified as ${level === 'SEVERE' ? 'sanctioned entity' : 'high-risk exposure'}`,
        addressType: 'PRIVATE_WALLET',
        cluster:
          level === 'SEVERE' ? { name: 'Local test entity', category: 'sanctioned entity' } : null,
        addressIdentifications: [],
        exposures: [],
        triggers: [],
        status: 'COMPLETE',
        poolMetadata: null,
      })
    }
    return answer(404, { message: 'Not Found' })
  }
}
