import type { xdr } from '@stellar/stellar-base'
import { library } from './library.ts'

/** Returns the XDR of a G… or M… address. */
export const muxedOf = (text: string): xdr.MuxedAccount =>
  library().decodeAddressToMuxedAccount(text, true)
/** Returns the address of an XDR account, G… or M…. */
export const addressOf = (muxed: xdr.MuxedAccount): string =>
  library().encodeMuxedAccountToAddress(muxed, true)
