import { graphql } from 'react-relay';

export const profile = graphql`
  query profileQuery($id: ID!) {
    user(by: {id: $id}) {
      ...profile_user
    }
  }
`;

export const user = graphql`
  fragment profile_user on User {
    handle
    followings(first: 3) {
      nodes {
        name
      }
    }
  }
`;

export const follow = graphql`
  mutation profileFollowMutation($id: ID!) {
    follow(userId: $id) {
      changed
    }
  }
`;
