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

const PATH = '/api/risk/v2/entities'
const LEVEL: Record<string, RiskLevel> = {
  severe: 'SEVERE',
  high: 'HIGH',
  medium: 'MEDIUM',
  low: 'LOW',
}
/**
 * An address that belongs to no party; any address works for checking whether a token is accepted.
 */
const NOBODY = '0x0000000000000000000000000000000000000001'

/**
 * Adapter for Chainalysis Address Screening v2: an address is registered, then queried. Its lowest
 * level is Low.
 */
export function chainalysis(base: string, http: ProviderHttp): Provider {
  const ask = (token: string, method: Ask['method'], path: string, body?: unknown) =>
    http.ask({ provider: 'CHAINALYSIS', token }, () => ({
      method,
      url: base + path,
      headers: {
        Token: token,
        Accept: 'application/json',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }))
  const entity = (address: string) => `${PATH}/${encodeURIComponent(address)}`
  return {
    async screen(token, { address }) {
      const registered = await ask(token, 'POST', PATH, { address })
      if (isRefusal(registered)) throw refusedToken(registered.status)
      if (registered.status !== 200 && registered.status !== 201)
        throw unusable(`the provider did not register the address (status ${registered.status})`)
      jsonOf(registered.text)
      const match = await ask(token, 'GET', entity(address))
      if (isRefusal(match)) throw refusedToken(match.status)
      if (match.status !== 200)
        throw unusable(`the provider did not return the entity (status ${match.status})`)
      const { risk, address: about } = jsonOf(match.text) as { risk?: unknown; address?: unknown }
      if (!isSameText(about, address)) throw unusable('the response is about another address')
      const level = typeof risk === 'string' ? LEVEL[risk.toLowerCase()] : undefined
      if (!level) throw unusable('the response contains no known risk')
      return level
    },
    async verifyToken(token) {
      const answer = await ask(token, 'GET', entity(NOBODY))
      if (isRefusal(answer)) return false
      const { status, text } = answer
      const { address, message } = jsonOf(text) as { address?: unknown; message?: unknown }
      // The address is registered, or is not registered yet; in both cases the token was accepted.
      if (
        (status === 200 && typeof address === 'string') ||
        (status === 404 && typeof message === 'string')
      )
        return true
      throw unusable(`the provider returned status ${status} without an entity`)
    },
  }
}
