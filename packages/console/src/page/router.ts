// URLs below /console. Filters are in the query, so that every view can be shared.
import { signal } from '@preact/signals'

export interface Place {
  path: string
  query: URLSearchParams
}

const here = (): Place => ({
  path: location.pathname.replace(/(.)\/+$/, '$1'),
  query: new URLSearchParams(location.search),
})

/** The current URL. */
export const place = signal<Place>(here())

/** Opens a URL of the panel. */
export function go(to: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', to)
  else history.replaceState(null, '', to)
  place.value = here()
  if (how === 'push') scrollTo(0, 0)
}

/** Returns the current URL with changed query parameters; null removes one. */
export function withQuery(changes: Record<string, string | null>): string {
  const query = new URLSearchParams(place.value.query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  return place.value.path + (text === '' ? '' : `?${text}`)
}

/** Follows links of the panel without a reload, and handles the browser's back button. */
export function startRouter(): void {
  addEventListener('popstate', () => (place.value = here()))
  document.addEventListener('click', (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null
    if (!(link instanceof HTMLAnchorElement) || link.target !== '' || link.hasAttribute('download'))
      return
    if (
      link.origin !== location.origin ||
      !/^\/console(?:\/|$)/.test(link.pathname) ||
      link.pathname.startsWith('/console/api/')
    )
      return
    if (link.hash !== '' && link.pathname === location.pathname) return
    event.preventDefault()
    go(link.pathname + link.search)
  })
}

/**
 * Returns the parameters of a pattern like `/console/w/:workspace/x/:id` in a path; null if it does
 * not match.
 */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/')
  const parts = path.split('/')
  if (wanted.length !== parts.length) return null
  const result: Record<string, string> = {}
  for (const [index, each] of wanted.entries()) {
    const part = parts[index] as string
    if (each.startsWith(':')) {
      try {
        result[each.slice(1)] = decodeURIComponent(part)
      } catch {
        return null
      }
    } else if (each !== part) return null
  }
  return result
}
