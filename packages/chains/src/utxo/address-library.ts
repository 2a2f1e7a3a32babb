import type * as Codecs from './address-codecs.ts'

let find = (): typeof Codecs => {
  throw new Error('bitcoinjs-lib must be loaded before it is used')
}

/** What of bitcoinjs-lib addresses need. */
export const codecs = (): typeof Codecs => find()

/**
 * Says how it is found when it is first asked for; what runs in a browser, which reads no file at
 * once, loads it before.
 */
export const findBy = (how: () => typeof Codecs): void => {
  find = how
}

/** Loads it. Resolves once {@link codecs} answers. */
export async function load(): Promise<void> {
  const loaded = await import('./address-codecs.ts')
  find = () => loaded
}
