import { go, place, withQuery } from '../router.ts'

/** Search text for a list that is loaded completely; stored in the URL as `q`. */
export function Search({ label }: { label: string }) {
  return (
    <input
      class="input"
      data-search
      type="search"
      aria-label={label}
      placeholder={label}
      value={place.value.query.get('q') ?? ''}
      onInput={(event) => go(withQuery({ q: event.currentTarget.value, page: null }), 'replace')}
    />
  )
}
