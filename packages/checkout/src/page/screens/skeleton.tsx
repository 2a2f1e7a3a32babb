/** Placeholders with the size of the content that is loading. */
export const SummarySkeleton = () => (
  <>
    <span class="skeleton skeleton-line" />
    <span class="skeleton skeleton-amount" />
    <span class="skeleton skeleton-line is-short" />
  </>
)

export const Skeleton = () => (
  <div class="screen">
    <div class="skeleton-status">
      <span class="skeleton skeleton-shape" />
      <span class="skeleton skeleton-line" />
    </div>
    {[0, 1, 2, 3, 4].map((row) => (
      <span key={row} class="skeleton skeleton-row" />
    ))}
  </div>
)
