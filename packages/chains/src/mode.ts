/**
 * Mode of an installation: which networks it is for. The mode of a rehearsal contains the chain id of
 * its private EVM chain, so that everything that is bound to the mode (home, backup, trust file,
 * policy, certificate of a key) is bound to the chain id too.
 */
export type NetworkMode = 'local' | `regtest-${number}` | 'mainnet'
export type ModeKind = 'local' | 'regtest' | 'mainnet'

/** A mode in writing. The chain id is below 10^15, so it is an exact number. */
const MODE_PATTERN = /^(?:local|mainnet|regtest-[1-9]\d{0,14})$/

export const isMode = (value: unknown): value is NetworkMode =>
  typeof value === 'string' && MODE_PATTERN.test(value)

export const kindOf = (mode: NetworkMode): ModeKind =>
  mode === 'local' || mode === 'mainnet' ? mode : 'regtest'

/** Returns the value for the kind of a mode. The caller states what holds in each. */
export const byMode = <T>(mode: NetworkMode, values: Readonly<Record<ModeKind, T>>): T =>
  values[kindOf(mode)]

/** Returns the chain id in the mode of a rehearsal; null in any other mode. */
export const chainIdIn = (mode: NetworkMode): number | null =>
  byMode(mode, { local: null, regtest: Number(mode.slice('regtest-'.length)), mainnet: null })

/** Whether the platform runs the chains itself, for a first look on one machine. */
export const hasLocalChains = (mode: NetworkMode): boolean =>
  byMode(mode, { local: true, regtest: false, mainnet: false })

/** Whether coins of value are moved. */
export const hasRealCoins = (mode: NetworkMode): boolean =>
  byMode(mode, { local: false, regtest: false, mainnet: true })
