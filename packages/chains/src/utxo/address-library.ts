import type * as Codecs from './address-codecs.ts'

let find = (): typeof Codecs => {
  throw new Error('bitcoinjs-lib must be loaded before it is used')
}

/** Returns the parts of bitcoinjs-lib that addresses need. */
export const codecs = (): typeof Codecs => find()

/**
 * Sets the function that loads the library on first use. A browser cannot read files synchronously,
 * so there the library is loaded before.
 */
export const findBy = (how: () => typeof Codecs): void => {
  find = how
}

/** Loads the library. {@link codecs} works once the promise resolves. */
export async function load(): Promise<void> {
  const loaded = await import('./address-codecs.ts')
  find = () => loaded
}
