/** Returns `xrpl:ADDRESS?amount=XRP&dt=TAG`. Wallets read `amount` in whole XRP, never in drops. */
export function paymentUri(o: { address: string; tag?: string | null; amount?: string }): string {
  const query = new URLSearchParams({
    ...(o.amount === undefined ? {} : { amount: o.amount }),
    ...(o.tag === undefined || o.tag === null ? {} : { dt: o.tag }),
  }).toString()
  return `xrpl:${o.address}${query === '' ? '' : `?${query}`}`
}
