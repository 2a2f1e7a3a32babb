import { LAG_MS } from '../faults.ts'
import type { HttpAnswer, HttpRequest } from '../http-server.ts'
import { Chainalysis } from './chainalysis.ts'
import { elliptic } from './elliptic.ts'
import { AmlFaults, ODDITIES, type Oddity } from './faults.ts'
import type { Risks } from './risks.ts'
import { trm } from './trm.ts'

const AML_PROVIDERS = ['CHAINALYSIS', 'ELLIPTIC', 'TRM'] as const
export type AmlProvider = (typeof AML_PROVIDERS)[number]

const KEY = 'sandbox'
const SECRET = Buffer.from('sandbox').toString('base64')
const PREFIX = '/aml'

const json = (status: number, body: unknown, headers?: Record<string, string>): HttpAnswer => ({
  status,
  body: JSON.stringify(body),
  ...(headers ? { headers } : {}),
})

/** Response of each provider above its rate limit, with the headers that it documents. */
function rateLimited(provider: AmlProvider): HttpAnswer {
  const body = { message: 'Too Many Requests' }
  if (provider !== 'ELLIPTIC') return json(429, body, { 'retry-after': '60' })
  return json(429, body, {
    'x-ratelimit-limit': '500',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': String(Math.ceil(Date.now() / 1000) + 60),
  })
}

/** Response of each provider to an invalid key. */
const REVOKED: Record<AmlProvider, HttpAnswer> = {
  CHAINALYSIS: json(403, { message: 'Forbidden' }),
  ELLIPTIC: json(401, { name: 'Unauthorized', message: 'Unauthorized' }),
  TRM: json(401, { code: 401, name: 'Unauthorized', message: 'Invalid credentials' }),
}

/** Well-formed responses with an undocumented status or level. */
const UNKNOWN: Record<AmlProvider, HttpAnswer> = {
  CHAINALYSIS: json(200, { risk: 'Pending', status: 'PENDING' }),
  ELLIPTIC: json(200, { process_status: 'running', risk_score: null }),
  TRM: json(201, [{ addressRiskIndicators: [{ categoryRiskScoreLevel: 99 }] }]),
}

/**
 * Emulators of the three screening providers with their production protocols, below
 * /aml/chainalysis, /aml/elliptic and /aml/trm.
 */
export class AmlEmulators {
  readonly faults: Record<AmlProvider, AmlFaults> = {
    CHAINALYSIS: new AmlFaults(),
    ELLIPTIC: new AmlFaults(),
    TRM: new AmlFaults(),
  }
  readonly #risks: () => Risks
  readonly #chainalysis = new Chainalysis()

  constructor(risks: () => Risks) {
    this.#risks = risks
  }

  /** Returns the provider whose emulator serves a path, and the rest of the path. */
  static at(path: string): { provider: AmlProvider; rest: string } | null {
    for (const provider of AML_PROVIDERS) {
      const base = `${PREFIX}/${provider.toLowerCase()}`
      if (path.startsWith(`${base}/`)) return { provider, rest: path.slice(base.length) }
    }
    return null
  }

  /**
   * Sets the fault mode of a provider, or of all of them (AML). Returns false for an unknown name.
   */
  fault(name: unknown, mode: unknown): boolean {
    const providers = AML_PROVIDERS.filter((provider) => name === 'AML' || name === provider)
    for (const provider of providers) this.faults[provider].set(mode)
    return providers.length > 0
  }

  /** Handles a request. Undefined closes the connection without a response. */
  async handle(provider: AmlProvider, request: HttpRequest): Promise<HttpAnswer | undefined> {
    const { mode } = this.faults[provider]
    if (mode === 'down') return undefined
    if (mode === 'reject') return json(500, { message: 'Internal Server Error' })
    if (mode === 'rate-limited') return rateLimited(provider)
    if (mode === 'forbidden-page')
      return { status: 403, body: '<html><body><h1>Request blocked</h1></body></html>' }
    if (mode === 'revoked') return REVOKED[provider]
    if (mode === 'malformed')
      return { status: 200, body: '<html><body>Service is being upgraded</body></html>' }
    if (mode === 'empty') return { status: 200, body: '' }
    if (mode === 'unknown') return UNKNOWN[provider]
    const oddity = ODDITIES.find((each) => each === mode) ?? null
    const answered = this.#answer(provider, request, oddity)
    if (mode === 'lag') await new Promise((resolve) => setTimeout(resolve, LAG_MS).unref())
    return mode === 'drop-answer' ? undefined : answered
  }

  #answer(provider: AmlProvider, request: HttpRequest, oddity: Oddity | null): HttpAnswer {
    const levelOf = (address: string) => this.#risks().get(address)
    try {
      if (provider === 'CHAINALYSIS') return this.#chainalysis.handle(request, KEY, levelOf, oddity)
      if (provider === 'ELLIPTIC') return elliptic(request, KEY, SECRET, levelOf, oddity)
      return trm(request, KEY, levelOf, oddity)
    } catch (error) {
      if (error instanceof SyntaxError) return json(400, { message: 'the body is not JSON' })
      throw error
    }
  }
}
