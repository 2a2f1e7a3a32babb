import { startKeygen, startRefresh, startSign } from '@custody/threshold'

/**
 * The protocol runs of a node's threshold engine. A node process always uses `nativeEngine`; tests
 * of what a node permits replace it, because two of three signatures take most of their time.
 */
export interface Engine {
  startKeygen: typeof startKeygen
  startSign: typeof startSign
  startRefresh: typeof startRefresh
}

export const nativeEngine: Engine = { startKeygen, startSign, startRefresh }
