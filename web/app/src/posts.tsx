import { useMutation } from 'urql';
import { sentence } from './client';
import { DeletePostDocument, FavoriteDocument, UnfavoriteDocument, type PostCardFragment } from './gql';
import { Face } from './people';
import { Link } from './router';
import { useSession } from './session';
import { Age, Icon, short, tell } from './ui';

export function PostCard({ post }: { post: PostCardFragment }) {
  const session = useSession();
  const [, favorite] = useMutation(FavoriteDocument);
  const [, unfavorite] = useMutation(UnfavoriteDocument);
  const [, remove] = useMutation(DeletePostDocument);
  const { author } = post;
  const like = async () => {
    const { error } = await (post.viewerHasFavorited ? unfavorite : favorite)({ postId: post.id });
    if (error) tell(sentence(error), 'bad');
  };
  return (
    <article className="post" aria-label={author ? `Post of ${author.name}` : 'Post'}>
      {author && (
        <header>
          <Link to={`/u/${author.handle}`} className="who">
            <Face of={author} size={36} />
            <b>{author.name}</b>
          </Link>
          <small className="quiet">
            <Age at={post.createdAt} />
          </small>
        </header>
      )}
      <p className="text">{post.text}</p>
      <footer>
        <button
          type="button"
          className={`button plain like ${post.viewerHasFavorited ? 'on' : ''}`}
          aria-pressed={!!post.viewerHasFavorited}
          aria-label={`Favorite, ${post.favoriteCount}`}
          disabled={!session}
          onClick={like}
        >
          <Icon name="heart" />
          {short(post.favoriteCount)}
        </button>
        {author && author.id === session?.userId && (
          <button type="button" className="button plain" aria-label="Delete this post" onClick={() => remove({ id: post.id })}>
            <Icon name="trash" />
          </button>
        )}
      </footer>
    </article>
  );
}
