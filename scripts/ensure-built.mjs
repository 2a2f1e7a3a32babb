import { ensureBuilt } from './built.mjs'

/** Builds the checkout if necessary: `node --import ./scripts/ensure-built.mjs PROGRAM`. */
ensureBuilt()
