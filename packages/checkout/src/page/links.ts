/** Returns a URL that may be used in a link; null for every scheme except http and https. */
export function webLink(url: string | null): string | null {
  if (url === null) return null
  try {
    return /^https?:$/.test(new URL(url).protocol) ? url : null
  } catch {
    return null
  }
}

/**
 * Returns a URI that a wallet opens: any scheme that the browser does not execute or display
 * itself.
 */
export function walletLink(uri: string | null): string | null {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(uri ?? '')?.[1]?.toLowerCase()
  return scheme === undefined ||
    /^(?:javascript|data|vbscript|blob|file|about|view-source)$/.test(scheme)
    ? null
    : uri
}
