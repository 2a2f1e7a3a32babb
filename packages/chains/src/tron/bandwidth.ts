/** Usual bandwidth of a TRX transfer and of a token transfer, in points. */
export const TRANSFER_BANDWIDTH = 268n
export const TOKEN_BANDWIDTH = 345n
