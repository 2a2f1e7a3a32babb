import type { AmlSettings } from '../../core/settings/settings.ts'
import type { ProviderName } from './levels.ts'

/** An installation's screening settings; callers cannot change them. */
export interface AmlInstallation extends Omit<AmlSettings, 'urls'> {
  urls: Record<ProviderName, string>
}

const PUBLIC_URLS: Record<ProviderName, string> = {
  CHAINALYSIS: 'https://api.chainalysis.com',
  ELLIPTIC: 'https://aml-api.elliptic.co',
  TRM: 'https://api.trmlabs.com',
}

/**
 * Returns the settings that screening uses.
 * @param devnetUrl base URL of the local chains, whose provider emulators are used; null: the real
 *   providers
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
