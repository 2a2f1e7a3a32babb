import type { ProviderName } from './levels.ts'

/** What an installation sets for screening; nothing here is a caller's. */
export interface AmlInstallation {
  urls: Record<ProviderName, string>
  /** Elliptic's score from which an address is SEVERE, HIGH, MEDIUM; above 0 it is LOW. */
  ellipticThresholds: [number, number, number]
  /** TRM's names of chains by network code, where they differ from the built-in ones. */
  trmChains: Record<string, string>
  /** File of sanctioned addresses; null: the refreshed one in the home, else the one that is shipped. */
  ofacFile: string | null
}

const PUBLIC_URLS: Record<ProviderName, string> = { CHAINALYSIS: 'https://api.chainalysis.com', ELLIPTIC: 'https://aml-api.elliptic.co', TRM: 'https://api.trmlabs.com' }

function url(provider: ProviderName, fallback: string): string {
  const name = `CUSTODY_AML_${provider}_URL`
  const text = process.env[name] || fallback
  if (!/^https?:\/\/[^\s]+$/.test(text)) throw new Error(`${name}: must be an http(s) URL`)
  return text.replace(/\/+$/, '')
}

function thresholds(): [number, number, number] {
  const text = process.env['CUSTODY_AML_ELLIPTIC_THRESHOLDS'] || '9,7,4'
  const [severe, high, medium, ...more] = text.split(',').map(Number) as [number, number, number]
  if (more.length > 0 || !(severe <= 10 && severe > high && high > medium && medium > 0)) throw new Error(`CUSTODY_AML_ELLIPTIC_THRESHOLDS=${text}: must be three falling scores such as 9,7,4`)
  return [severe, high, medium]
}

function trmChains(): Record<string, string> {
  const text = process.env['CUSTODY_AML_TRM_CHAINS'] || ''
  return Object.fromEntries(text.split(',').filter((pair) => pair.trim() !== '').map((pair) => {
    const match = /^\s*([A-Z0-9_]+)\s*=\s*([a-z0-9_]+)\s*$/.exec(pair)
    if (!match) throw new Error(`CUSTODY_AML_TRM_CHAINS: "${pair}" is not NETWORK=chain`)
    return [match[1] as string, match[2] as string]
  }))
}

/**
 * Reads the installation's settings from the environment.
 * @param devnetUrl base of the local chains, whose faces stand in for the providers; null: the providers themselves
 * @throws Error with a sentence that names the setting
 */
export function readAmlInstallation(devnetUrl: string | null): AmlInstallation {
  const base = (provider: ProviderName) => url(provider, devnetUrl === null ? PUBLIC_URLS[provider] : `${devnetUrl}/aml/${provider.toLowerCase()}`)
  return {
    urls: { CHAINALYSIS: base('CHAINALYSIS'), ELLIPTIC: base('ELLIPTIC'), TRM: base('TRM') },
    ellipticThresholds: thresholds(), trmChains: trmChains(), ofacFile: process.env['CUSTODY_OFAC_FILE'] || null,
  }
}
