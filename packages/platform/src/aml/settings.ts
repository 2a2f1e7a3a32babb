import type { AmlSettings } from '../settings/settings.ts'
import type { ProviderName } from './levels.ts'

/** What an installation sets for screening; nothing here is a caller's. */
export interface AmlInstallation extends Omit<AmlSettings, 'urls'> {
  urls: Record<ProviderName, string>
}

const PUBLIC_URLS: Record<ProviderName, string> = {
  CHAINALYSIS: 'https://api.chainalysis.com',
  ELLIPTIC: 'https://aml-api.elliptic.co',
  TRM: 'https://api.trmlabs.com',
}

/**
 * What screening works with.
 * @param devnetUrl base of the local chains, whose faces stand in for the providers; null: the
 *   providers themselves
 */
export function amlInstallation(settings: AmlSettings, devnetUrl: string | null): AmlInstallation {
  const url = (provider: ProviderName) =>
    settings.urls[provider] ??
    (devnetUrl === null ? PUBLIC_URLS[provider] : `${devnetUrl}/aml/${provider.toLowerCase()}`)
  return {
    ...settings,
    urls: { CHAINALYSIS: url('CHAINALYSIS'), ELLIPTIC: url('ELLIPTIC'), TRM: url('TRM') },
  }
}
