/** What a transfer of TRX and one of a token usually take, in points of bandwidth. */
export const TRANSFER_BANDWIDTH = 268n
export const TOKEN_BANDWIDTH = 345n
